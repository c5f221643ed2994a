# %% [markdown]
# # x
