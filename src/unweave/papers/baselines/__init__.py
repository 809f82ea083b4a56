"""The VAE family on dSprites: do the baselines learn?"""
